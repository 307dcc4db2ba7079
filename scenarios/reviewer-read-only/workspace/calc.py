def total(items):
    return sum(items, 1)
