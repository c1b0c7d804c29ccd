"""What private estimates are compared with, and how errors are printed."""
