// Follows the events of the dashboard while its tab is seen.
'use strict';
const $ = id => document.getElementById(id);
const path = location.pathname, status = $('live'), log = $('log');
const rows = {};
const samples = [];
let events;
for (const row of $('memory').tBodies[0].rows) rows[row.cells[0].textContent] = row.cells;
const kb = bytes => Math.ceil(bytes / 1024) + ' KB';

// Bars of the last minute: one for each second, its accounts on top of each other.
const draw = () => {
  const most = Math.max(...samples.map(s => s[0].used), 1);
  let bars = '';
  samples.forEach((accounts, second) => {
    let below = 0;
    accounts.slice(1).forEach((account, i) => {
      const height = account.used / most * 100;
      below += height;
      if (height > .2) bars += `<rect class="c${i + 1}" x="${second + 60 - samples.length}" y="${100 - below}" width=".9" height="${height}"/>`;
    });
  });
  $('bars').innerHTML = `<svg viewBox="0 0 60 100" preserveAspectRatio="none" role="img" aria-label="Memory of each account in the last minute, at most ${kb(most)}">${bars}</svg>`;
};

const show = event => {
  const state = JSON.parse(event.data);
  for (const id in state) if ($(id)?.matches('td')) $(id).textContent = state[id];
  if (state.log) {
    const below = log.scrollHeight - log.scrollTop - log.clientHeight < 20;
    log.textContent = state.log;
    if (below) log.scrollTop = log.scrollHeight;
  }
  for (const { name, used, most } of state.accounts) if (rows[name]) {
    rows[name][1].textContent = kb(used);
    rows[name][2].textContent = kb(most);
  }
  samples.push(state.accounts);
  if (samples.length > 60) samples.shift();
  draw();
};

const say = text => { if (status.textContent != text) status.textContent = text; };

const follow = () => {
  events?.close();
  events = null;
  if (document.hidden) return say('Paused');
  samples.length = 0;
  events = new EventSource(path + '/events');
  events.onopen = () => say('Live');
  events.onmessage = show;
  events.onerror = () => {
    say('No connection');
    // The server has answered: it wants a login, or has no room.
    if (events.readyState == 2) setTimeout(() => location.reload(), 3000);
  };
};
document.addEventListener('visibilitychange', follow);
// Signing out has the server cut the stream off before the page is gone.
for (const end of ['pagehide', 'submit']) addEventListener(end, () => events?.close());
addEventListener('pageshow', shown => shown.persisted && follow());
log.scrollTop = log.scrollHeight;
follow();
