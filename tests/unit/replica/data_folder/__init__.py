"""Tests of unit.replica.data_folder."""
