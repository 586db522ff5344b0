"""The plug-in opened by Python's ctypes: main.py PLUGIN."""
import ctypes
import sys

slope = ctypes.CDLL(sys.argv[1]).train_slope(50)
sys.exit(0 if 2990 <= slope <= 3010 else f"slope {slope} / 1000")
