"""A run as a service: a page to name unknown images, and an API."""
