"""Plug-ins for other systems, above site and federation."""
