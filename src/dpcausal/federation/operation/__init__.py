"""What keeps a federation running: archives, health, signs of life, secrets in settings."""
