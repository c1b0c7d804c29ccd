"""What a person reads: effects, curves over arms, effect curves, propensity scores."""
