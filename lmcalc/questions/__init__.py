"""Questions: each combines lenses with hardware and returns plain data. Rendering comes after."""
