"""Diffusion models that learn to denoise images by noisy gradients."""
