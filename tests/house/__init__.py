"""The house rules that ruff, pyright and import-linter cannot check. Each rule is shown to fail on a bad tree."""
