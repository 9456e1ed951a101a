"""Tests of the runner, without a GPU. See tools/runner/test."""
