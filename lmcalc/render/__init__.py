"""Rendering: plain data to a screen. Computes nothing."""
