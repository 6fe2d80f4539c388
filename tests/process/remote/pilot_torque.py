"""Grain servers as jobs of Torque, whose command line programs are played (batch_engine.py)."""
import batch_world

batch_world.run("torque")
