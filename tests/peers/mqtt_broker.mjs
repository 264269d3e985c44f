// usage: node mqtt_broker.mjs FOLDER [PORT]
//
// npm's aedes as a broker on loopback, which prints "listening PORT". FOLDER has node_modules. A line "cut" on standard input
// ends every connection, of which the broker keeps the sessions; it ends at the end of standard input.
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const { Aedes } = createRequire(`${process.argv[2]}/package.json`)('aedes');
const broker = await Aedes.createBroker({ concurrency: 1000, queueLimit: 100000 });
broker.on("subscribe", (_, client) => console.log(`subscribed ${client.id}`));
broker.on("publish", (packet) => packet.topic === "load" && console.log("message"));

const open = new Set();
const server = createServer((socket) => {
  open.add(socket);
  socket.on("close", () => open.delete(socket));
  broker.handle(socket);
});
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => console.log(`listening ${server.address().port}`));

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "cut") for (const socket of open) socket.destroy();
}
process.exit(0);
