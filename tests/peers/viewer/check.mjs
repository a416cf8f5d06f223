// The viewer in a real browser. Arguments: the browser, deeplook, and a folder with the runs demo, many and hostile.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [browserPath, deeplook, work] = process.argv.slice(2);
const at = (...names) => path.join(work, ...names);
const servers = [];

/** Starts `deeplook view`; resolves to its address. */
function serve(run) {
  const server = spawn(deeplook, ['view', run], { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  return new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', data => {
      said += data;
      const url = said.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (url) resolve(url[0]);
    });
    server.on('exit', code => reject(new Error(`deeplook view ended with ${code}: ${said}`)));
  });
}

function write(run, out) {
  const done = spawnSync(deeplook, ['view', run, '--out', out], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  return pathToFileURL(path.join(out, '/')).href;
}

/** A request exactly as given, as no browser would send it. */
function ask(base, target, { method = 'GET', host = new URL(base).host } = {}) {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path: target, method, setHost: false, headers: host === null ? {} : { Host: host } }, response => {
      let body = '';
      response.setEncoding('latin1').on('data', data => { body += data; }).on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    request.on('error', reject).end();
  });
}

/** A page that remembers everything suspicious. */
async function watched(context, base) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.trouble = [];
  page.on('request', request => {
    const url = request.url();
    if (!url.startsWith(base) && url !== 'data:,') page.trouble.push(`asked for ${url}`);
  });
  page.on('dialog', dialog => { page.trouble.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on('pageerror', error => page.trouble.push(`error ${error}`));
  page.on('popup', () => page.trouble.push('a window was opened'));
  page.on('console', message => {
    if (/Content Security Policy|Refused to/i.test(message.text())) page.trouble.push(message.text());
  });
  return page;
}

async function untouched(page, base) {
  const found = await page.evaluate(() => ({
    pwned: window.pwned,
    inline: [...document.scripts].filter(script => !script.src || script.textContent.trim()).length,
    strange: document.querySelectorAll('iframe, object, embed, base, form[action], [onerror], [onload], meta[http-equiv=refresh]').length,
    links: [...document.querySelectorAll('[href], [src]')].map(e => e.getAttribute('href') ?? e.getAttribute('src')).filter(url => /^\s*(javascript|https?|\/\/)/i.test(url)),
    sources: [...document.scripts].map(script => script.src),
  }));
  assert.deepEqual({ ...found, sources: null }, { pwned: undefined, inline: 0, strange: 0, links: [], sources: null }, page.url());
  for (const source of found.sources) assert.ok(source.startsWith(base), source);
  assert.deepEqual(page.trouble, [], page.url());
}

const rows = page => page.locator('#rows tr');
const ready = page => page.locator('#rows tr').first().waitFor();

async function clickThrough(context, base, name) {
  const page = await watched(context, base);
  await page.goto(`${base}index.html`);
  await ready(page);
  assert.equal(await rows(page).count(), 28);
  await page.screenshot({ path: at(`list-${name}.png`) });

  await page.locator('#filter-criterion').selectOption('vc');
  await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 14);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('orange');
  await page.waitForFunction(() => document.querySelectorAll('#rows tr').length < 14);
  const few = await rows(page).count();
  assert.ok(few > 0);
  const instructions = await page.locator('#rows .of-case .instruction').allTextContents();
  assert.equal(instructions.length, few);
  for (const text of instructions) assert.match(text, /orange/i);
  await page.keyboard.press('Escape');

  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.stage.live');
  assert.match(await page.locator('#place').textContent(), new RegExp(`1 of (${few} filtered|28)`));
  await page.waitForFunction(few => document.getElementById('place').textContent === `1 of ${few} filtered`, few);

  // The slider, by mouse and by keys.
  const handle = page.locator('.handle');
  const value = async () => Number(await handle.getAttribute('aria-valuenow'));
  assert.equal(await value(), 50);
  const box = await page.locator('.panes').boundingBox();
  await handle.hover();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.2, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  assert.ok(Math.abs(await value() - 20) <= 2, `slider at ${await value()}`);
  await handle.press('ArrowRight');
  assert.ok(Math.abs(await value() - 22) <= 2, `slider at ${await value()}`);

  // Zoom: both pictures in step, also side by side.
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
  await page.mouse.wheel(0, -600);
  await page.waitForFunction(() => parseInt(document.getElementById('zoom').textContent, 10) > 200);
  await page.keyboard.press('s');
  assert.equal(await page.locator('.stage').getAttribute('data-view'), 'side');
  const moves = await page.locator('.panes .world').evaluateAll(worlds => worlds.map(world => world.style.transform));
  assert.ok(moves.length >= 2 && moves.every(move => move === moves[0] && move.includes('scale(')), moves.join());
  await page.keyboard.press('0');
  assert.equal(await page.locator('#zoom').textContent(), '100 %');
  assert.ok(await page.locator('svg.boxes').first().isVisible());
  await page.keyboard.press('b');
  assert.ok(!await page.locator('svg.boxes').first().isVisible());

  // A picture of the conversation, closely; the evidence; the next one and back.
  await page.locator('.observation a.zoomable').first().click();
  assert.ok(await page.locator('#lightbox .world img').isVisible());
  await page.keyboard.press('Escape');
  assert.ok(!await page.locator('#lightbox').isVisible());
  const evidence = page.locator('.evidence-list a').first();
  if (await evidence.count()) {
    await evidence.click();
    assert.equal(await page.locator('figure:target').count(), 1);
  }
  const here = new URL(page.url()).pathname;
  if (few > 1) {
    await page.keyboard.press('j');
    await page.waitForURL(url => url.pathname !== here);
    await page.waitForFunction(few => document.getElementById('place').textContent === `2 of ${few} filtered`, few);
    await page.keyboard.press('k');
    await page.waitForURL(url => url.pathname === here);
    await page.waitForFunction(() => document.getElementById('back').href.includes('criterion'));
  }
  await page.keyboard.press('u');
  await ready(page);
  assert.equal(await rows(page).count(), few);
  assert.equal(await page.locator('#rows tr.selected').count(), 1);
  await page.keyboard.press('x');
  await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 28);
  await page.keyboard.press('?');
  assert.ok(await page.locator('#help').isVisible());
  await untouched(page, base);
  await page.close();
}

async function screenshots(browser, base) {
  for (const [name, options] of Object.entries({
    light: { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
    dark: { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
    phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  })) {
    const context = await browser.newContext(options);
    const page = await watched(context, base);
    await page.goto(base + 'index.html');
    await ready(page);
    await page.screenshot({ path: at(`list-${name}.png`) });
    await page.goto(`${base}case/0.html`);
    await page.waitForSelector('.stage.live');
    await page.waitForLoadState('networkidle');
    await page.screenshot({ path: at(`case-${name}.png`) });
    await page.screenshot({ path: at(`case-${name}-whole.png`), fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name}: the page is ${wide} pixels too wide`);
    await context.close();
  }
}

async function hostile(context, base, name) {
  const page = await watched(context, base);
  await page.goto(`${base}index.html`);
  await ready(page);
  const count = await rows(page).count();
  assert.equal(count, 12);
  const text = await page.locator('#rows').textContent();
  assert.ok(text.includes('<script>window.pwned=1</script>') && text.includes('[U+202E]'));
  assert.ok(!text.includes('\u202e'));
  assert.match(text, /has format 99/);
  await page.screenshot({ path: at(`hostile-list-${name}.png`) });
  for (const filter of await page.locator('#selects select').all()) {
    await filter.selectOption({ index: 1 });
    await page.waitForTimeout(50);
  }
  await untouched(page, base);
  let seen = '';
  for (let n = 0; n < count; n++) {
    await page.goto(`${base}case/${n}.html`);
    await page.waitForLoadState('networkidle');
    await page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true; });
    // Everything that can be pointed at is pointed at.
    for (const image of await page.locator('img').all()) await image.hover({ timeout: 500, force: true }).catch(() => {});
    seen += await page.locator('body').textContent();
    await untouched(page, base);
    if (n === 4) await page.screenshot({ path: at(`hostile-case-${name}.png`), fullPage: true });
  }
  for (const words of ['Edited cannot be shown', 'Reference cannot be shown: it is not a picture', 'was interrupted', 'is not a trace of ours', 'has format 99', 'There is no trace', 'Attempt 1 failed']) {
    assert.ok(seen.includes(words), `no page says ${words}`);
  }
  await page.close();
}

async function refusals(base) {
  const [, picture] = readdirSync(at('demo', 'blobs')).filter(name => name.endsWith('.png'));
  for (const target of ['/', '/index.html', '/case/0.html', '/data?q=x', `/blobs/${picture}`, '/assets/style.css']) {
    const answer = await ask(base, target);
    assert.equal(answer.status, 200, target);
    for (const [name, value] of Object.entries({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cross-origin-resource-policy': 'same-origin' })) assert.equal(answer.headers[name], value);
    assert.match(answer.headers['content-security-policy'], /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'$/);
    for (const host of ['attacker.invalid', `attacker.invalid:${new URL(base).port}`, '127.0.0.1', '127.0.0.1:1', null]) {
      const refused = await ask(base, target, { host });
      assert.ok([400, 403].includes(refused.status), `${target} for ${host}: ${refused.status}`);
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) assert.equal((await ask(base, target, { method })).status, 405);
    assert.equal((await ask(base, target, { method: 'HEAD' })).status, 200);
  }
  const demo = at('demo');
  const blobs = readdirSync(at('demo', 'blobs'));
  const toml = blobs.find(name => name.endsWith('.toml'));
  for (const target of [
    '/../../../../etc/passwd', '/blobs/../../../../etc/passwd', '/blobs/..%2f..%2f..%2fetc%2fpasswd', '/blobs/%2e%2e/manifest.json',
    '/case/..%2f..%2fetc%2fpasswd.html', '/case/-1.html', '/case/99999999999999999999.html', '/case/0', '/assets/..%2fstyle.css', '/assets/',
    '/blobs/', `/blobs/${'0'.repeat(64)}.png`, `/blobs/${'A'.repeat(64)}.png`, `/blobs/${toml}`, `/${demo}/index.html`, '/judgements', '/results.jsonl', '/case/0.html/../../x', '/data/0001.js',
  ]) {
    const answer = await ask(base, target);
    assert.ok([400, 404].includes(answer.status), `${target}: ${answer.status}`);
    assert.ok(!answer.body.includes('root:'), target);
  }
}

/** The server and the script on disk must give the same answers. */
async function sameAnswers(context, served, exported) {
  const [remote, local] = [await watched(context, served), await watched(context, exported)];
  await Promise.all([remote.goto(`${served}index.html`), local.goto(`${exported}index.html`)]);
  await Promise.all([ready(remote), ready(local)]);
  assert.equal(await rows(remote).count(), 100);
  assert.equal(await rows(local).count(), 100);
  const questions = [
    {}, { limit: '500', offset: '1900' }, { criterion: 'if', label: 'Over Modification', limit: '3' }, { outcome: 'failed' }, { differ: 'any', model: 'gpt-5.1', sort: 'cost', desc: '1' },
    { differ: 'judges', sort: 'outcome' }, { q: '00012 seedream' }, { q: 'ORANGE', editor: 'bagel', sort: 'tokens' }, { q: 'nothing has this' }, { type: 'Change Count', around: '7', limit: '0' },
    { around: '1999', sort: 'case', desc: '1' }, { sort: 'seconds', offset: '50', limit: '20' }, { sort: 'type', desc: '1', outcome: 'abstained' }, { sort: 'label', limit: '40', offset: '300' }, { desc: '1', limit: '5' }, { model: 'unknown' },
  ];
  for (const question of questions) {
    const ask = page => page.evaluate(question => deeplook.query(question), question);
    assert.deepEqual(await ask(local), await ask(remote), JSON.stringify(question));
  }
  await Promise.all([remote.close(), local.close()]);
}

const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const demo = await serve(at('demo'));
  await refusals(demo);
  console.log('foreign hosts, methods and paths are refused');
  await clickThrough(context, demo, 'served');
  await screenshots(browser, demo);
  const demoOnDisk = write(at('demo'), at('demo-pages'));
  await clickThrough(context, demoOnDisk, 'on-disk');
  console.log('a run can be looked through, served and from disk');
  await hostile(context, await serve(at('hostile')), 'served');
  await hostile(context, write(at('hostile'), at('hostile-pages')), 'on-disk');
  console.log('hostile traces run nothing and load nothing');
  await sameAnswers(context, await serve(at('many')), write(at('many'), at('many-pages')));
  console.log('the server and the script on disk answer alike');
  for (const file of readdirSync(at('demo-pages', 'case'))) {
    assert.match(readFileSync(at('demo-pages', 'case', file), 'utf8'), /<meta http-equiv="Content-Security-Policy" content="default-src /);
  }
} finally {
  await browser.close();
  for (const server of servers) server.kill();
}
// The servers were ended on purpose.
process.exit(0);
