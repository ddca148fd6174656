"""Seams of packages that one does not own. Rule: one file a package, none imports another, none sees the mode."""
