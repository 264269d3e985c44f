// usage: node event_client.mjs PACKAGES PORT
//
// npm's eventsource as a client of browser_peer: prints a line for each promise.
import { createRequire } from 'node:module'

const [packages, port] = process.argv.slice(2)
const { EventSource } = createRequire(packages + '/package.json')('eventsource')

const source = new EventSource('http://127.0.0.1:' + port + '/events')
const heard = []
const done = (right, more) => {
  console.log((right ? 'ok' : 'not ok') + " - npm's eventsource hears what is remembered, with its ids" + (right ? '' : ' (' + more + ')'))
  source.close()
  process.exit(right ? 0 : 1)
}
source.onmessage = (event) => {
  heard.push(event.lastEventId + '=' + event.data)
  if (heard.length === 3) done(heard.join() === 'o=one,t=two,t=three', heard.join())
}
source.onerror = (event) => done(false, event.message)
