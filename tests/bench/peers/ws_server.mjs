// usage: node ws_server.mjs PACKAGES
//
// npm's ws as sockets_server.cpp is: the same paths on a port that is free, told on standard error.
import { createRequire } from 'node:module'

const require = createRequire(process.argv[2] + '/package.json')
const { WebSocketServer } = require('ws')

const subscribers = new Set()
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', backlog: 511, perMessageDeflate: false, clientTracking: false })
server.on('listening', () => process.stderr.write(`listening ${server.address().port} 0\n`))
server.on('connection', (socket, request) => {
  socket.on('error', () => {})
  if (request.url === '/publish') {
    socket.on('message', () => {
      const stamp = Buffer.from(process.hrtime.bigint().toString().padStart(20, '0').padEnd(64, '.'))
      for (const each of subscribers) each.send(stamp, { binary: false })
    })
    return
  }
  if (request.url === '/topic') {
    subscribers.add(socket)
    socket.on('close', () => subscribers.delete(socket))
  }
  socket.on('message', (data) => socket.send(data, { binary: true }))
})
process.on('SIGTERM', () => process.exit(0))
