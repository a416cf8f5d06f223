// One judgement: the stage, the pictures of the conversation, and the way to the next one.
'use strict';

(() => {
  const { element } = deeplook;
  const $ = id => document.getElementById(id);
  const n = Number(document.documentElement.dataset.n);

  // A picture that cannot be had says so in its place.
  const mourn = image => {
    const name = image.alt || 'This picture';
    const note = element('p', { class: 'broken' }, `${name} cannot be shown: its file is missing or was changed.`);
    (image.closest('.window, .zoomable') || image).replaceWith(note);
  };
  for (const image of document.images) {
    if (image.complete && !image.naturalWidth && image.loading !== 'lazy') mourn(image);
    else image.addEventListener('error', () => mourn(image), { once: true });
  }

  setUpStage();
  setUpLightbox();
  setUpNeighbours();

  function setUpStage() {
    const root = $('stage');
    if (!root) return;
    const holder = root.querySelector('.panes');
    const panes = [...holder.querySelectorAll('.pane')].filter(pane => pane.querySelector('.window'));
    if (panes.length < 2) return;
    const stage = new deeplook.Stage(root, panes, scale => { $('zoom').textContent = `${Math.round(scale * 100)} %`; });
    let against = panes[1];

    const show = view => {
      root.dataset.view = view;
      for (const button of root.querySelectorAll('[data-view]')) button.setAttribute('aria-pressed', button.dataset.view === view);
      for (const pane of panes) {
        pane.classList.toggle('over', view === 'slider' && pane === against);
        pane.classList.toggle('away', view === 'slider' && pane !== against && pane !== panes[0]);
      }
      for (const button of $('against').children) button.setAttribute('aria-pressed', button.dataset.pane === against.id);
      $('against').hidden = view !== 'slider' || panes.length < 3;
      holder.dataset.left = panes[0].dataset.name;
      holder.dataset.right = against.dataset.name;
      stage.draw();
    };
    for (const pane of panes.slice(1)) {
      const button = element('button', { type: 'button', 'data-pane': pane.id }, pane.dataset.name);
      button.addEventListener('click', () => { against = pane; show('slider'); });
      $('against').append(button);
    }
    for (const button of root.querySelectorAll('button[data-view]')) button.addEventListener('click', () => show(button.dataset.view));
    const zooms = { in: () => stage.zoomAt(1.5), out: () => stage.zoomAt(1 / 1.5), fit: () => stage.fit() };
    for (const button of root.querySelectorAll('[data-zoom]')) button.addEventListener('click', zooms[button.dataset.zoom]);
    const boxes = () => {
      const on = root.classList.toggle('bare');
      $('boxes').setAttribute('aria-pressed', !on);
    };
    $('boxes').hidden = !root.querySelector('svg.boxes');
    $('boxes').addEventListener('click', boxes);
    stage.addHandle(holder);
    $('tools').hidden = false;
    root.classList.add('live');
    show('slider');
    addEventListener('resize', () => stage.draw());
    Object.assign(deeplook.keys, {
      s: () => show(root.dataset.view === 'slider' ? 'side' : 'slider'),
      r: () => { against = panes[1 + panes.indexOf(against) % (panes.length - 1)]; show('slider'); },
      b: boxes, '+': zooms.in, '=': zooms.in, '-': zooms.out, 0: zooms.fit,
    });
  }

  function setUpLightbox() {
    const box = $('lightbox');
    document.addEventListener('click', event => {
      const link = event.target.closest('a.zoomable');
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const small = link.querySelector('img');
      const image = element('img', { src: small.src, alt: small.alt, width: small.getAttribute('width'), height: small.getAttribute('height'), draggable: 'false' });
      const pane = element('div', { class: 'pane' }, element('div', { class: 'window' }, element('div', { class: 'world' }, image)));
      const close = element('button', { type: 'button' }, 'Close');
      close.addEventListener('click', () => box.close());
      const stage = element('div', { class: 'stage live' }, pane);
      box.replaceChildren(stage, element('p', {}, element('bdi', {}, small.alt), ' ', close));
      box.showModal();
      new deeplook.Stage(stage, [pane]);
    });
    box.addEventListener('click', event => { if (event.target === box) box.close(); });
  }

  // Next and previous follow the list as it was filtered and sorted.
  async function setUpNeighbours() {
    const state = deeplook.state(location.search);
    delete state.at;
    const search = new URLSearchParams(state).toString();
    const go = (link, to) => {
      if (to == null) { link.removeAttribute('href'); link.setAttribute('aria-disabled', 'true'); }
      else { link.setAttribute('href', `${to}.html${search ? `?${search}` : ''}`); link.removeAttribute('aria-disabled'); }
    };
    $('back').setAttribute('href', `../index.html#${new URLSearchParams({ ...state, at: n })}`);
    const follow = id => { const link = $(id); if (link.hasAttribute('href')) link.click(); };
    Object.assign(deeplook.keys, {
      j: () => follow('next'), ArrowRight: () => follow('next'),
      k: () => follow('previous'), ArrowLeft: () => follow('previous'),
      u: () => follow('back'), '/': () => follow('back'), f: () => follow('back'),
    });
    if (!search) return;
    const { around, matched } = await deeplook.query({ ...state, around: n, limit: 0 });
    if (!around) return;
    go($('previous'), around.previous);
    go($('next'), around.next);
    $('place').textContent = `${around.position + 1} of ${matched} filtered`;
  }
})();
