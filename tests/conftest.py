import os

# SDL is pulled in by Gymnasium's renderers; no test opens a window.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
