"""From decisions of the policy to light trees: views of parts, and the placement of parts."""
