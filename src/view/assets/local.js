// The list without a server: rows come from script files, and are asked here as src/view/query.rs does it.
'use strict';

(() => {
  const rows = [];
  const searched = new Map();
  const filters = ['run', 'criterion', 'label', 'outcome', 'type', 'editor', 'model', 'mode', 'differ'];
  const words = text => text.toLowerCase().split(/\s+/).filter(word => word);
  const passes = (row, filter, asked) => !asked || (filter === 'differ' && asked === 'any' ? row.differ !== '' : row[filter] === asked);

  /** Called by every file of rows. */
  deeplook.add = more => { for (const row of more) rows.push(row); };

  const loaded = (async () => {
    const chunks = Number(document.documentElement.dataset.chunks);
    for (let chunk = 1; chunk <= chunks; chunk++) {
      await new Promise((resolve, reject) => {
        const script = document.createElement('script');
        script.src = `${deeplook.root}data/${String(chunk).padStart(4, '0')}.js`;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${script.src} cannot be read; copy the folder again`));
        document.head.append(script);
      });
    }
    for (const row of rows) {
      searched.set(row, [row.case, row.instruction, row.editor, row.label, row.model, row.reason].join('\n').toLowerCase());
    }
  })();
  // Whoever asks hears of a failure; until then it is nobody's.
  loaded.catch(() => {});

  // Names in the order in which people count, piece by piece: number, then word.
  const pieces = text => [...text.toLowerCase().matchAll(/(\d*)(\D*)/g)].filter(match => match[0]).map(match => [BigInt(match[1] || 0), match[2]]);
  const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const compareNames = (a, b) => {
    for (let i = 0; i < Math.max(a.length, b.length); i++) {
      if (!a[i] || !b[i]) return a[i] ? 1 : -1;
      const order = compareText(a[i][0], b[i][0]) || compareText(a[i][1], b[i][1]);
      if (order) return order;
    }
    return 0;
  };

  function sort(matched, column, down) {
    const known = [...filters, 'case', 'turns', 'tokens', 'seconds', 'cost'];
    if (!known.includes(column)) return down ? matched.reverse() : matched;
    const compare = column === 'case' ? compareNames : compareText;
    const keyed = matched.map(row => {
      const value = row[column === 'outcome' ? 'score' : column];
      return { row, key: value == null || value === '' ? null : column === 'case' ? pieces(value) : value };
    });
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return down ? compare(b.key, a.key) : compare(a.key, b.key);
    });
    return keyed.map(item => item.row);
  }

  deeplook.query = async params => {
    await loaded;
    const asked = words(params.q || '');
    const facets = {};
    const tally = {};
    let matched = [];
    for (const row of rows) {
      const found = asked.every(word => searched.get(row).includes(word));
      const failed = filters.filter(filter => !passes(row, filter, params[filter]));
      for (const filter of filters) {
        if (row[filter] === '') continue;
        const counts = facets[filter] ||= new Map();
        const counted = found && failed.every(other => other === filter);
        counts.set(row[filter], (counts.get(row[filter]) || 0) + Number(counted));
      }
      if (found && !failed.length) {
        const step = row.level ?? row.outcome;
        tally[step] = (tally[step] || 0) + 1;
        matched.push(row);
      }
    }
    matched = sort(matched, params.sort, params.desc === '1');
    let around = null;
    if (params.around !== undefined) {
      const position = matched.findIndex(row => row.n === Number(params.around));
      const at = place => matched[place]?.n ?? null;
      if (position >= 0) around = { position, previous: at(position - 1), next: at(position + 1) };
    }
    for (const name of Object.keys(facets)) facets[name] = [...facets[name]].sort((a, b) => compareText(a[0], b[0]));
    const offset = Number(params.offset || 0);
    return {
      total: rows.length, matched: matched.length, offset, facets, tally, around,
      rows: matched.slice(offset, offset + Math.min(Number(params.limit ?? 100), 500)),
    };
  };
})();
