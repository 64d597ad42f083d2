"""Colours of figures and pages, for light and for dark paper."""

# Okabe and Ito 2008 (Color Universal Design): told apart by all kinds of colour vision; shapes and lines say it again
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DARK = ("#56B4E9", "#E69F00", "#2FD0A0", "#CC79A7", "#F0E442", "#6FA8FF", "#FFFFFF", "#AAAAAA")
