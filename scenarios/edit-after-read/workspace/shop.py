"""Prices."""

TAX = 0.07


def gross(price):
    return price * (1 + TAX)
