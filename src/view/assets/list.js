// The list: filters, search, order, pages; 100 rows at a time.
'use strict';

(() => {
  const LIMIT = 100;
  const { element, number } = deeplook;
  const $ = id => document.getElementById(id);
  const names = { run: 'Run', criterion: 'Criterion', outcome: 'Outcome', label: 'Label', type: 'Type', editor: 'Editor', model: 'Model', mode: 'Mode', differ: 'Disagreement' };
  const differ = { any: 'any', repeats: 'repeats of one judge', judges: 'between judges' };
  const criteria = { if: 'IF', vc: 'VC' };
  const columns = [
    { id: 'case', name: 'Case', always: true },
    { id: 'run', name: 'Run' },
    { id: 'type', name: 'Type' },
    { id: 'editor', name: 'Editor' },
    { id: 'criterion', name: 'Criterion', always: true },
    { id: 'mode', name: 'Mode' },
    { id: 'model', name: 'Model' },
    { id: 'outcome', name: 'Verdict', always: true },
    { id: 'turns', name: 'Turns', numeric: true },
    { id: 'tokens', name: 'Tokens', numeric: true },
    { id: 'seconds', name: 'Time', numeric: true },
    { id: 'cost', name: 'Cost', numeric: true },
  ];
  let state = deeplook.state(location.hash);
  let answer = null;
  let selected = -1;
  let asking = 0;

  async function ask() {
    const number_of_question = ++asking;
    const params = { ...state, limit: LIMIT };
    if (state.at !== undefined) params.around = state.at;
    delete params.at;
    try {
      let got = await deeplook.query(params);
      // Back from a page: show the part of the list that it is on.
      if (state.at !== undefined && got.around && state.offset === undefined && got.around.position >= LIMIT) {
        params.offset = state.offset = String(Math.floor(got.around.position / LIMIT) * LIMIT);
        got = await deeplook.query(params);
      }
      if (number_of_question !== asking) return;
      answer = got;
      selected = answer.rows.findIndex(row => String(row.n) === state.at);
      show();
    } catch (error) {
      $('summary').textContent = `The list cannot be read: ${error.message}. Is the viewer still running?`;
    }
  }

  function change(changes) {
    state = { ...state, ...changes };
    delete state.at;
    if (!('offset' in changes)) delete state.offset;
    for (const name of Object.keys(state)) if (state[name] === '' || state[name] == null) delete state[name];
    const hash = new URLSearchParams(state).toString();
    history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
    ask();
  }

  function show() {
    showSummary();
    showFilters();
    showRows();
    const { matched, offset } = answer;
    $('pager').hidden = matched <= LIMIT;
    $('place').textContent = `${number.format(offset + 1)}–${number.format(Math.min(offset + LIMIT, matched))} of ${number.format(matched)}`;
    $('earlier').disabled = offset === 0;
    $('later').disabled = offset + LIMIT >= matched;
    $('nothing').hidden = matched > 0;
    $('table').hidden = matched === 0;
  }

  function showSummary() {
    const { total, matched, tally } = answer;
    const steps = [['3', 'best label'], ['2', 'second label'], ['1', 'third label'], ['0', 'worst label'], ['verdict', 'verdict without a score'], ['abstained', 'abstained'], ['failed', 'failed'], ['missing', 'missing'], ['interrupted', 'interrupted'], ['unreadable', 'unreadable']];
    const verdicts = ['3', '2', '1', '0', 'verdict'].reduce((sum, step) => sum + (tally[step] || 0), 0);
    const others = steps.slice(5).filter(([step]) => tally[step]).map(([step, name]) => `${number.format(tally[step])} ${name}`);
    const what = matched === total ? `${number.format(total)} judgements` : `${number.format(matched)} of ${number.format(total)} judgements`;
    $('summary').textContent = `${what}: ${[`${number.format(verdicts)} verdicts`, ...others].join(', ')}`;
    $('tally').replaceChildren(...steps.filter(([step]) => tally[step]).map(([step, name]) => {
      const part = element('span', { class: `share ${/^\d$/.test(step) ? `level-${step}` : 'no-level'}`, title: `${name}: ${tally[step]}` });
      part.style.flexGrow = tally[step];
      return part;
    }));
  }

  function showFilters() {
    const selects = Object.keys(names).map(filter => {
      let values = answer.facets[filter] || [];
      if (filter === 'differ' && values.length) {
        const all = values.reduce((sum, [, count]) => sum + count, 0);
        values = values.length > 1 ? [['any', all], ...values] : values;
      } else if (values.length < 2 && !state[filter]) {
        return null;
      }
      if (!values.length) return null;
      const options = values.map(([value, count]) => {
        const name = filter === 'differ' ? differ[value] : filter === 'criterion' ? criteria[value] || value : value;
        return element('option', { value, selected: state[filter] === value }, `${name} (${number.format(count)})`);
      });
      const select = element('select', { id: `filter-${filter}` }, element('option', { value: '' }, 'all'), ...options);
      select.addEventListener('change', () => change({ [filter]: select.value }));
      return element('label', { class: state[filter] ? 'active' : null }, element('span', {}, names[filter]), select);
    });
    const focused = document.activeElement?.id;
    $('selects').replaceChildren(...selects.filter(select => select));
    if (focused?.startsWith('filter-')) $(focused)?.focus();
    if (document.activeElement !== $('q')) $('q').value = state.q || '';
    $('reset').hidden = !Object.keys(state).some(name => name === 'q' || name in names);
  }

  function showRows() {
    const used = columns.filter(column => {
      if (column.always) return true;
      if (column.numeric) return answer.rows.some(row => row[column.id] != null && (column.id !== 'cost' || row.cost > 0));
      return (answer.facets[column.id] || []).length > 1;
    });
    $('head').replaceChildren(...used.map(column => {
      const active = state.sort === column.id;
      const direction = active ? (state.desc === '1' ? 'descending' : 'ascending') : null;
      const button = element('button', { type: 'button' }, column.name);
      button.addEventListener('click', () => {
        if (!active) change({ sort: column.id, desc: '' });
        else if (state.desc !== '1') change({ desc: '1' });
        else change({ sort: '', desc: '' });
      });
      return element('th', { scope: 'col', class: column.numeric ? 'numeric' : null, 'aria-sort': direction }, button);
    }));
    $('rows').replaceChildren(...answer.rows.map((row, index) => {
      const line = element('tr', { class: index === selected ? 'selected' : null }, ...used.map(column => cell(row, column)));
      line.addEventListener('click', event => {
        if (!event.target.closest('a') && !String(getSelection())) location.href = address(row);
      });
      return line;
    }));
    if (selected >= 0) $('rows').children[selected]?.scrollIntoView({ block: 'center' });
  }

  function address(row) {
    const { offset, at, ...asked } = state;
    const search = new URLSearchParams(asked).toString();
    return `case/${row.n}.html${search ? `?${search}` : ''}`;
  }

  function cell(row, column) {
    const attributes = { class: [`of-${column.id}`, column.numeric ? 'numeric' : ''].join(' ').trim(), 'data-name': column.name };
    switch (column.id) {
      case 'case':
        return element('td', attributes,
          element('a', { href: address(row) }, element('bdi', {}, row.case)),
          row.repeat ? element('span', { class: 'soft' }, ` repeat ${row.repeat}`) : null,
          row.instruction ? element('span', { class: 'instruction', dir: 'auto' }, row.instruction) : null);
      case 'outcome': {
        const style = row.level == null ? 'no-level' : `level-${row.level}`;
        const reason = row.outcome === 'verdict' ? null : row.reason;
        return element('td', attributes,
          element('span', { class: `chip ${style}`, title: reason }, element('bdi', {}, row.label || row.outcome)),
          row.differ ? element('span', { class: 'differ', title: `other verdicts differ: ${differ[row.differ]}` }, '≠') : null,
          reason ? element('span', { class: 'instruction' }, reason) : null);
      }
      case 'criterion': return element('td', attributes, element('bdi', {}, criteria[row.criterion] || row.criterion));
      case 'tokens': return element('td', attributes, row.tokens == null ? '' : number.format(row.tokens));
      case 'seconds': return element('td', attributes, deeplook.seconds(row.seconds));
      case 'cost': return element('td', attributes, deeplook.cost(row.cost));
      default: return element('td', attributes, element('bdi', {}, String(row[column.id] ?? '')));
    }
  }

  function select(index) {
    if (!answer || !answer.rows.length) return;
    const lines = $('rows').children;
    lines[selected]?.classList.remove('selected');
    selected = Math.max(0, Math.min(index, answer.rows.length - 1));
    lines[selected].classList.add('selected');
    lines[selected].scrollIntoView({ block: 'nearest' });
  }

  function turn(pages) {
    if (!answer) return;
    const offset = Math.max(0, answer.offset + pages * LIMIT);
    if (offset >= answer.matched || offset === answer.offset) return;
    change({ offset: offset ? String(offset) : '' });
    scrollTo(0, 0);
  }

  let waiting;
  $('q').addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ q: $('q').value.trim() }), 120);
  });
  $('filters').addEventListener('submit', event => event.preventDefault());
  $('reset').addEventListener('click', () => reset());
  $('earlier').addEventListener('click', () => turn(-1));
  $('later').addEventListener('click', () => turn(1));
  addEventListener('hashchange', () => { state = deeplook.state(location.hash); ask(); });

  function reset() {
    $('q').value = '';
    change({ q: '', ...Object.fromEntries(Object.keys(names).map(name => [name, ''])) });
  }

  Object.assign(deeplook.keys, {
    j: () => select(selected + 1), ArrowDown: () => select(selected + 1),
    k: () => select(selected - 1), ArrowUp: () => select(selected - 1),
    Enter: event => {
      if (event.target.closest('a, button') || selected < 0) return false;
      location.href = address(answer.rows[selected]);
    },
    n: () => turn(1), p: () => turn(-1), x: reset,
    '/': () => $('q').select(),
    f: () => document.querySelector('#selects select')?.focus(),
  });
  ask();
})();
