// usage: node event_oracle.mjs PACKAGES PROGRAM COUNT SEED
//
// Makes COUNT streams of events at random, has eventsource-parser and our parser (event_lines) take each apart in pieces of their own,
// cut anywhere, and compares what they find. Prints one line for each kind of promise; ends with status 1 at the first difference,
// after the stream and the seed.
//
// The two may differ in one thing: eventsource-parser tells the id of an event only if the event itself has one.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [packages, program, count, seed] = process.argv.slice(2)
const require = createRequire(packages + '/package.json')
const { createParser } = await import(pathToFileURL(require.resolve('eventsource-parser')).href)

// A small generator, so that a seed repeats a run (Marsaglia's xorshift).
let state = Number(seed) | 1
function random(below) {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) % below
}

const tokens = [
  'data', 'data:', 'data: ', 'data:  two spaces', 'event:', 'event: add', 'event', 'id:', 'id: 7', 'id', 'id: a\0b', 'retry: 250',
  'retry:12x', 'retry', 'retry: ', ':', ': comment', ' data: x', 'Data: x', 'data : x', 'unknown: y', 'x', ' ', '\0', 'é', '€', '😀',
  '\ufeff', 'data: é\u2028', '\n', '\n', '\n\n', '\r', '\r\r', '\r\n', '\r\n\r\n', '\r\n\n',
].map((text) => Buffer.from(text, 'utf8'))
const broken = [[0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xef, 0xbb]].map((bytes) => Buffer.from(bytes))

function makeStream() {
  const parts = []
  if (random(8) === 0) parts.push(Buffer.from('\ufeff'))
  for (let left = 1 + random(40); left > 0; --left) {
    parts.push(random(12) === 0 ? broken[random(broken.length)] : tokens[random(tokens.length)])
    if (random(3) === 0) parts.push(Buffer.from(['\n', '\r\n', '\r'][random(3)]))
  }
  // eventsource-parser waits for what follows a CR at the end.
  parts.push(Buffer.from('\n:\n'))
  return Buffer.concat(parts)
}

function makeCuts(size) {
  const cuts = []
  const most = [1, 2, 5, 40][random(4)]
  for (let at = 0; at < size; ) {
    const piece = 1 + random(most)
    cuts.push(piece)
    at += piece
  }
  return cuts
}

function theirs(stream, cuts) {
  const events = []
  let retry = null
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onRetry: (value) => { retry = value },
    onError: () => {},
  })
  // The parser drops a byte order mark itself; both would drop two.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let at = 0
  for (const piece of cuts) {
    parser.feed(decoder.decode(stream.subarray(at, at + piece), { stream: true }))
    at += piece
  }
  return { events, retry }
}

const streams = []
for (let i = 0; i < Number(count); ++i) {
  const stream = makeStream()
  streams.push({ stream, ours: makeCuts(stream.length), theirs: makeCuts(stream.length) })
}
const input = streams.map((each) => each.stream.toString('hex') + ' ' + each.ours.join(' ') + '\n').join('')
const ran = spawnSync(program, { input, maxBuffer: 1 << 28 })
if (ran.status !== 0) {
  console.log('not ok - our parser takes every stream (status ' + ran.status + ')')
  process.exit(1)
}
const lines = ran.stdout.toString('utf8').split('\n')
let total = 0
streams.forEach((each, index) => {
  const found = JSON.parse(lines[index])
  const retry = found.pop()
  const wanted = theirs(each.stream, each.theirs)
  const same =
    found.length === wanted.events.length && retry === wanted.retry &&
    found.every((event, at) => {
      const other = wanted.events[at]
      return event.data === other.data && (event.type || 'message') === (other.event || 'message') &&
        (other.id === undefined || event.id === other.id)
    })
  total += found.length
  if (same) return
  console.log('not ok - both parsers find the same events (seed ' + seed + ', stream ' + index + ')')
  console.log('  stream: ' + JSON.stringify(each.stream.toString('latin1')))
  console.log('  ours:   ' + lines[index])
  console.log('  theirs: ' + JSON.stringify(wanted))
  process.exit(1)
})
console.log('ok - both parsers find the same events in ' + count + ' streams, cut at random')
console.log((total > Number(count) / 2 ? 'ok' : 'not ok') + ' - the streams hold events to compare')
