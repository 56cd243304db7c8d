/** A mail server on loopback that takes one message a connection, and keeps it. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port');
  return { url: `smtp://127.0.0.1:${address.port}`, messages, close: () => server.close() };
}
