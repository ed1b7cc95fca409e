"""Speeds that tell rest from motion [m/s, rad/s]."""

REST_SPEED = 1e-9
"""Up to which a contact or a joint does not slip, a body does not turn, and a row does not leave its bound."""

STOP_SPEED = 1e-11
"""At which slip, or turning, has come to its end, or turns back."""
