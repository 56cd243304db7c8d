/** A mail server on loopback that takes one message a connection, and keeps it; `using` closes it. */
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { listen } from './free-port.ts';

export async function startSmtpSink() {
  /** The lines of each message, after the envelope; dots that the protocol doubles are single. */
  const messages: string[][] = [];
  const server = createServer((socket) => {
    let message: string[] | null = null;
    const reply = (text: string) => socket.write(`${text}\r\n`);
    reply('220 sink');
    createInterface({ input: socket }).on('line', (line) => {
      if (message === null) {
        const [command = ''] = line.toUpperCase().split(/[ :]/);
        if (command === 'DATA') message = [];
        reply(command === 'DATA' ? '354 go on' : command === 'QUIT' ? '221 bye' : '250 ok');
      } else if (line === '.') {
        messages.push(message);
        message = null;
        reply('250 taken');
      } else message.push(line.replace(/^\./, ''));
    });
    socket.on('error', () => {});
  });
  const url = `smtp://127.0.0.1:${await listen(server)}`;
  return { url, messages, [Symbol.dispose]: () => void server.close() };
}
