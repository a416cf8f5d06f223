// Pictures to look at closely: zoom and pan, in step over all panes, and a slider between two of them.
'use strict';

deeplook.Stage = class {
  /** `panes` hold a `.window` with a `.world` each; the first one gives the frame. */
  constructor(root, panes, onZoom = () => {}) {
    this.root = root;
    this.panes = panes;
    this.onZoom = onZoom;
    this.split = 0.5;
    this.pointers = new Map();
    this.frame = panes[0];
    const { width, height } = this.size();
    root.style.setProperty('--ratio', width / height);
    for (const pane of panes) {
      const view = pane.querySelector('.window');
      view.addEventListener('wheel', event => this.wheel(event), { passive: false });
      view.addEventListener('pointerdown', event => this.down(event, view));
      view.addEventListener('pointermove', event => this.move(event, view));
      for (const end of ['pointerup', 'pointercancel']) view.addEventListener(end, event => this.pointers.delete(event.pointerId));
      view.addEventListener('dblclick', event => this.zoomAt(this.scale > 1.01 ? 1 / this.scale : 4, this.place(event, view)));
    }
    this.fit();
  }

  size() {
    const image = this.frame.querySelector('img');
    return { width: image.width || image.naturalWidth || 1, height: image.height || image.naturalHeight || 1 };
  }

  fit() {
    [this.x, this.y, this.scale] = [0, 0, 1];
    this.draw();
  }

  /** Where on the window something happened, from 0 to 1. */
  place(event, view) {
    const box = view.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  }

  zoomAt(factor, { x, y } = { x: 0.5, y: 0.5 }) {
    const scale = Math.min(64, Math.max(1, this.scale * factor));
    const grown = scale / this.scale;
    this.x = x - (x - this.x) * grown;
    this.y = y - (y - this.y) * grown;
    this.scale = scale;
    this.draw();
  }

  wheel(event) {
    const factor = Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002) * (event.deltaMode ? 20 : 1));
    // Nothing left to zoom out of: the page may scroll.
    if (this.scale === 1 && factor < 1) return;
    event.preventDefault();
    this.zoomAt(factor, this.place(event, event.currentTarget));
  }

  down(event, view) {
    if (event.button) return;
    if (event.pointerType === 'mouse') event.preventDefault();
    view.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event, view));
    if (this.slides() && this.scale === 1 && event.pointerType === 'mouse') this.slide(this.place(event, view).x);
  }

  move(event, view) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.place(event, view);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    this.pointers.set(event.pointerId, now);
    if (others.length) {
      const other = others[0][1];
      const apart = point => Math.hypot(point.x - other.x, point.y - other.y) || 0.001;
      this.zoomAt(apart(now) / apart(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    } else if (this.scale > 1) {
      this.x += now.x - before.x;
      this.y += now.y - before.y;
      this.draw();
    } else if (this.slides()) {
      this.slide(now.x);
    }
  }

  slides() { return this.root.dataset.view === 'slider'; }

  slide(to) {
    this.split = Math.min(1, Math.max(0, to));
    this.draw();
  }

  draw() {
    const least = 1 - this.scale;
    this.x = Math.min(0, Math.max(least, this.x));
    this.y = Math.min(0, Math.max(least, this.y));
    this.root.style.setProperty('--split', this.split);
    this.root.style.setProperty('--scale', this.scale);
    this.root.classList.toggle('zoomed', this.scale > 1);
    for (const pane of this.panes) {
      const world = pane.querySelector('.world');
      world.style.transform = `translate(${this.x * 100}%, ${this.y * 100}%) scale(${this.scale})`;
      // From here on people want to see pixels, not what a filter makes of them.
      const image = world.querySelector('img');
      const shown = world.offsetWidth * this.scale / (image.naturalWidth || 1);
      image.classList.toggle('pixels', shown > 3);
    }
    this.handle?.setAttribute('aria-valuenow', Math.round(this.split * 100));
    this.onZoom(this.scale);
  }

  /** A handle between the two halves, for mouse, finger and keys. */
  addHandle(panes) {
    const handle = deeplook.element('div', { class: 'handle', role: 'slider', tabindex: '0', 'aria-label': 'How much of the original is shown', 'aria-valuemin': 0, 'aria-valuemax': 100 });
    const follow = event => {
      const box = panes.getBoundingClientRect();
      this.slide((event.clientX - box.left) / box.width);
    };
    handle.addEventListener('pointerdown', event => { event.preventDefault(); handle.focus(); handle.setPointerCapture(event.pointerId); });
    handle.addEventListener('pointermove', event => { if (handle.hasPointerCapture(event.pointerId)) follow(event); });
    handle.addEventListener('keydown', event => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.slide(this.split + step);
    });
    panes.append(handle);
    this.handle = handle;
    this.draw();
  }
};
