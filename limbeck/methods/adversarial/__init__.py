"""Generators taught by a discriminator that learns from rows through noise."""
