// usage: node visit.mjs URL TOKEN BROWSER [PICTURES]
//
// Visits coird's dashboard with Chromium, as people with a desk, with phones, with many tabs and with a finger on F5 do, and
// prints a line "ok - PROMISE" or "not ok - PROMISE" for each. Pictures are written into the folder PICTURES.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { HtmlValidate } from 'html-validate';
import puppeteer from 'puppeteer-core';

const [url, token, executablePath, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const validator = new HtmlValidate({ extends: ['html-validate:recommended'] });
const PATIENCE = 60000 * Number(process.env.COIR_TEST_SCALE ?? 100) / 100;
let failed = false;

const result = (text, faults) => {
  const found = faults.filter(fault => fault);
  console.log(`${found.length ? 'not ok' : 'ok'} - ${text}`);
  for (const fault of found) console.log(`#   ${fault}`);
  failed ||= found.length > 0;
};

// The figure of /metrics that counts open streams.
const streams = async () => {
  const text = await (await fetch(new URL('/metrics', url))).text();
  return Number(text.match(/^coir_http_connections\{state="kept"\} (\d+)$/m)[1]);
};
const until = async (condition, what) => {
  const end = Date.now() + PATIENCE;
  while (!await condition()) {
    if (Date.now() > end) throw new Error(`${what} did not come about`);
    await new Promise(next => setTimeout(next, 50));
  }
};

const browser = await puppeteer.launch({
  executablePath, headless: 'shell', timeout: PATIENCE, protocolTimeout: PATIENCE,
  args: ['--disable-gpu', '--no-proxy-server', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
});
const said = [];  // by all consoles
const open = async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('console', line => said.push(`console: ${line.text()} ${line.location().url ?? ''}`));
  page.on('pageerror', fault => said.push(`error: ${fault.message}`));
  page.on('request', request => { if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith('data:')) said.push(`asked for ${request.url()}`); });
  return page;
};
const live = page => page.waitForFunction(() => document.getElementById('live')?.textContent === 'Live' && document.querySelectorAll('rect').length > 0, { timeout: PATIENCE });
// A headless tab is always seen: this one says that it is not, or is again.
const see = (page, seen) => page.evaluate(hidden => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}, !seen);
const html = async page => (await page.evaluate(async () => (await fetch(location.href)).text()));
const faultsOfHtml = async text => {
  const report = await validator.validateString(text);
  return report.results.flatMap(each => each.messages).map(each => `html: ${each.ruleId}: ${each.message} (line ${each.line})`);
};
const faultsForReaders = async page => {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map(each => `axe: ${each.id}: ${each.help}: ${each.nodes.map(node => node.target).join(' ')}`);
};
const tooWide = page => page.evaluate(() => document.documentElement.scrollWidth > innerWidth && `wider than ${innerWidth} px: ${document.documentElement.scrollWidth} px`);
const scheme = (page, value) => page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);

try {
  const page = await open();
  await page.setViewport({ width: 1100, height: 800 });
  await page.goto(url);
  result('the login is right HTML and usable by all', [...await faultsOfHtml(await html(page)), ...await faultsForReaders(page)]);
  await page.type('#token', token);
  await Promise.all([page.waitForNavigation(), page.click('button')]);
  await live(page);
  result('the page is right HTML', await faultsOfHtml(await html(page)));

  const before = await page.$eval('#uptime', cell => cell.textContent);
  await page.waitForFunction(was => document.getElementById('uptime').textContent !== was, { timeout: PATIENCE }, before);
  result('its figures change by themselves', []);

  const screens = [['a desk', { width: 1100, height: 800 }], ['a phone of 360 px', { width: 360, height: 740, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }],
    ['a phone of 412 px', { width: 412, height: 915, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }]];
  for (const [name, screen] of screens) {
    const faults = [];
    for (const shade of ['light', 'dark']) {
      await page.setViewport(screen);
      await scheme(page, shade);
      await live(page);
      faults.push(await tooWide(page), ...(await faultsForReaders(page)).map(fault => `${shade}: ${fault}`));
    }
    result(`it is usable on ${name}, light and dark`, faults);
  }
  if (pictures) {
    await page.waitForFunction(() => new Set([...document.querySelectorAll('rect')].map(bar => bar.getAttribute('x'))).size > 30, { timeout: PATIENCE });
    for (const [name, screen, shade] of [['desk', { width: 900, height: 640 }, 'light'], ['phone', { width: 360, height: 640, isMobile: true }, 'dark']]) {
      await page.setViewport(screen);
      await scheme(page, shade);
      await live(page);
      await page.screenshot({ path: `${pictures}/${name}.webp`, type: 'webp', quality: 55 });
    }
  }

  await see(page, false);
  await until(async () => await streams() === 0, 'the end of the stream of a hidden tab');
  await see(page, true);
  await live(page);
  result('a hidden tab has no stream, and one that is seen again has', [await streams() !== 1 && `${await streams()} streams`]);

  const tabs = [page];
  while (tabs.length < 6) {
    await see(tabs.at(-1), false);
    tabs.push(await open());
    await tabs.at(-1).goto(url);
    await live(tabs.at(-1));
  }
  await until(async () => await streams() === 1, 'one stream of six tabs');
  result('six tabs share a browser, and the one that is seen is live', []);

  const last = tabs.at(-1);
  for (let turn = 0; turn < 60; ++turn) await last.evaluate(() => { setTimeout(() => location.reload(), 0); }).catch(() => {});
  await last.goto(url);
  await live(last);
  await until(async () => await streams() === 1, 'one stream after F5');
  result('F5 held down leaves one stream and a live page', []);

  const plain = await open();
  await plain.setJavaScriptEnabled(false);
  await plain.setViewport({ width: 360, height: 740, isMobile: true });
  await plain.goto(url);
  const text = await plain.$eval('main', main => main.textContent);
  result('without JavaScript it is a plain table', [!/Connections\d+ of \d+/.test(text) && text, !/total\d+ KB/.test(text) && 'no ledger', await tooWide(plain)]);

  await Promise.all([last.waitForNavigation(), last.click('header button')]);
  result('signing out asks for the token again', [await last.$('#token') === null && 'no form']);
  result('no console says a word, and nothing is asked of another host', said);
} catch (fault) {
  result('the visit is made', [fault.stack, ...said]);
} finally {
  await browser.close();
}
process.exit(failed ? 1 : 0);
