x = 1  # TODO name
y = 2
