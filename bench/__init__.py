"""How fast is it? `python -m bench` prints docs/benchmarks.md: ratios, measured in one run on one core."""
