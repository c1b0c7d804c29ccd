"""Ways of carrying messages between sites and a coordinator."""
