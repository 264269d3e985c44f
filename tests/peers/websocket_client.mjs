// usage: node websocket_client.mjs PACKAGES PORT
//
// npm's ws as a client of websocket_peer: prints a line for each promise.
import { createRequire } from 'node:module'

const [packages, port] = process.argv.slice(2)
const require = createRequire(packages + '/package.json')
const WebSocket = require('ws')

let failed = false
function tell(right, text, more = '') {
  console.log((right ? 'ok' : 'not ok') + ' - ' + text + (right || more === '' ? '' : ' (' + more + ')'))
  failed ||= !right
}

// open connects, and gives what comes as promises: message() the next message, closed() the end.
async function open(path, protocols = []) {
  const socket = new WebSocket('ws://127.0.0.1:' + port + path, protocols, { maxPayload: 64 << 20 })
  const waiting = []
  const arrived = []
  const pongs = []
  const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })))
  closed.then(() => waiting.splice(0).forEach((each) => each(null)))
  socket.on('message', (data, binary) => {
    const next = waiting.shift()
    next ? next({ data, binary }) : arrived.push({ data, binary })
  })
  socket.on('pong', (data) => pongs.push(data.toString()))
  socket.on('error', () => {})
  await new Promise((resolve, reject) => { socket.on('open', resolve); socket.on('error', reject) })
  const message = () => arrived.length > 0 ? arrived.shift() : new Promise((resolve) => waiting.push(resolve))
  return { socket, message, pongs, closed: () => closed }
}

function filled(size, text) {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; ++i) bytes[i] = text ? 0x20 + (i * 7) % 90 : (i * 31 + (i >> 8)) & 0xff
  return bytes
}

for (const binary of [false, true]) {
  const peer = await open('/')
  let right = true
  for (const size of [0, 1, 125, 126, 127, 4095, 65535, 65536, 1 << 20]) {
    const bytes = filled(size, !binary)
    peer.socket.send(bytes, { binary })
    const back = await peer.message()
    right &&= back !== null && back.binary === binary && bytes.equals(back.data)
  }
  tell(right, (binary ? 'binary' : 'text') + ' messages of every length form come back')
  tell(peer.socket.extensions === '', 'permessage-deflate is not agreed on')
  peer.socket.close(4001, 'a reason with é')
  const end = await peer.closed()
  tell(end.code === 4001, 'the code of a close comes back', JSON.stringify(end))
}

{
  const peer = await open('/')
  let right = true
  const text = Buffer.from('é€😀 and more of it, so that characters are cut', 'utf8')
  for (let round = 1; round < 40; ++round) {
    for (let at = 0; at < text.length; at += round) {
      peer.socket.send(text.subarray(at, at + round), { binary: false, fin: at + round >= text.length })
      if (at % 3 === 0) peer.socket.ping('p' + at)
    }
    const back = await peer.message()
    right &&= back !== null && text.equals(back.data)
  }
  tell(right, 'fragments with pings between them come back as one message, characters cut anywhere')
  tell(peer.pongs.length > 40 && peer.pongs.includes('p3'), 'each ping between fragments is answered')
  peer.socket.close()
  await peer.closed()
}

for (const path of ['/pieces']) {
  const peer = await open(path)
  const bytes = filled(16 << 20, false)
  peer.socket.send(bytes)
  const back = await peer.message()
  tell(back !== null && bytes.equals(back.data), 'a message of 16 MiB comes back in pieces')
  peer.socket.close(1000)
  tell((await peer.closed()).code === 1000, 'and the socket closes in order')
}

for (const code of [1000, 1001, 3000, 4999]) {
  const peer = await open('/close/' + code)
  peer.socket.send('now')
  const end = await peer.closed()
  tell(end.code === code && end.reason === 'as you asked', 'a server closes with ' + code, JSON.stringify(end))
}

{
  const peer = await open('/', ['other', 'echo.v1'])
  tell(peer.socket.protocol === 'echo.v1', 'the first subprotocol of the client that the server has is agreed on')
  peer.socket.send(filled((1 << 20) + 1, false))
  const end = await peer.closed()
  tell(end.code === 1009, 'a message over the ceiling is 1009', JSON.stringify(end))
}
{
  const peer = await open('/')
  peer.socket.send(Buffer.from([0x61, 0xff]), { binary: false })
  const end = await peer.closed()
  tell(end.code === 1007, 'text that is no UTF-8 is 1007', JSON.stringify(end))
}
process.exit(failed ? 1 : 0)
