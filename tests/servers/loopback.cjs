// Loaded before a real server that would listen on every interface: it listens on loopback, and says on which port.
"use strict";
const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  if (Number.isNaN(Number(port))) return listen.call(this, port, ...rest);
  this.once("listening", () => process.stderr.write(`loopback port ${this.address().port}\n`));
  return listen.call(this, Number(port), "127.0.0.1", ...rest);
};
