// What both pages share. Data only ever becomes text: nothing here parses HTML.
'use strict';

const deeplook = {
  root: document.documentElement.dataset.root || '',

  /** Asks the list; local.js replaces this where there is no server. */
  async query(params) {
    const response = await fetch(`${this.root}data?${new URLSearchParams(params)}`);
    if (!response.ok) throw new Error(`the viewer answered ${response.status}`);
    return response.json();
  },

  /** An element with attributes and children; texts stay texts. */
  element(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, '');
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.filter(child => child != null));
    return element;
  },

  /** What the list is asked for, out of an address. */
  state(text) {
    const known = ['run', 'criterion', 'label', 'outcome', 'type', 'editor', 'model', 'mode', 'differ', 'q', 'sort', 'desc', 'offset', 'at'];
    const state = {};
    for (const [name, value] of new URLSearchParams(text.replace(/^[#?]/, ''))) {
      if (known.includes(name) && value !== '') state[name] = value;
    }
    return state;
  },

  number: new Intl.NumberFormat('en'),

  seconds(value) {
    if (value == null) return '';
    return value < 10 ? `${value.toFixed(1)} s` : value < 600 ? `${Math.round(value)} s` : `${Math.round(value / 60)} min`;
  },

  cost(value) {
    if (value == null) return '';
    return value === 0 ? '–' : value < 0.0001 ? '< $0.0001' : `$${value.toFixed(4)}`;
  },
};

// Keys: `deeplook.keys[key]` is called unless somebody is typing.
deeplook.keys = {};
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.closest('input, select, textarea');
  if (typing) {
    if (event.key === 'Escape') typing.blur();
    return;
  }
  if (document.querySelector('dialog[open]')) return;
  const action = deeplook.keys[event.key];
  if (action && action(event) !== false) event.preventDefault();
});

const help = document.getElementById('help');
deeplook.keys['?'] = () => help.showModal();
for (const button of document.querySelectorAll('[data-help]')) button.addEventListener('click', () => help.showModal());
help.addEventListener('click', event => { if (event.target === help) help.close(); });
