"""Identification: probes against a gallery of people and distractors, by shots and by groups."""
