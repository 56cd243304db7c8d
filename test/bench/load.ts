/**
 * An HTTP load generator: a fixed number of requests over a fixed number of connections, each sent after the previous
 * response. It parses as little as possible of a response, so that it measures the server.
 */
import { connect, type Socket } from 'node:net';

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly requests: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The path of a connection's next request; `answer` is its last response, null before the first. */
  readonly path: (connection: number, answer: Buffer | null) => string;
  /** The required status; 200 by default. */
  readonly status?: number;
  /** Whether this process may sleep between responses; see {@link stayAwake}. */
  readonly mayRest?: boolean;
}

export interface Measured {
  readonly requests_per_second: number;
  readonly bytes_per_second: number;
  /** The duration of each request, ascending. */
  readonly durations_ms: readonly number[];
}

export async function runLoad(load: Load): Promise<Measured> {
  const { hostname, port } = new URL(load.url);
  const durations: number[] = [];
  let bytes = 0;
  let left = load.requests;
  const startMs = performance.now();
  const worker = async (connection: number) => {
    const client = new Client(
      connect(Number(port), hostname),
      hostname,
      load.headers ?? {},
      load.status ?? 200,
    );
    let answer: Buffer | null = null;
    while (left > 0) {
      left -= 1;
      const sentMs = performance.now();
      answer = await client.get(load.path(connection, answer));
      durations.push(performance.now() - sentMs);
      bytes += answer.length;
    }
    client.close();
  };
  const awake = load.mayRest === true ? null : stayAwake();
  await Promise.all(Array.from({ length: load.connections }, (_, connection) => worker(connection)));
  awake?.end();
  const seconds = (performance.now() - startMs) / 1000;
  durations.sort((a, b) => a - b);
  return {
    requests_per_second: load.requests / seconds,
    bytes_per_second: bytes / seconds,
    durations_ms: durations,
  };
}

/**
 * Keeps this process from sleeping between responses: on a virtual machine, waking a sleeping peer takes the server
 * longer than the response itself.
 */
function stayAwake(): { end: () => void } {
  let isOver = false;
  const spin = () => {
    if (!isOver) setImmediate(spin);
  };
  spin();
  return {
    end: () => {
      isOver = true;
    },
  };
}

const HEAD_END = Buffer.from('\r\n\r\n');

class Client {
  readonly #socket: Socket;
  readonly #head: string;
  readonly #status: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #bodyStart = -1;
  #total = Number.POSITIVE_INFINITY;
  #settle: { resolve: (body: Buffer) => void; reject: (error: Error) => void } | null = null;

  constructor(socket: Socket, host: string, headers: Readonly<Record<string, string>>, status: number) {
    this.#socket = socket;
    this.#status = status;
    const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#head = ` HTTP/1.1\r\n${lines.join('')}\r\n`;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#settle?.reject(error));
    socket.on('close', () => this.#settle?.reject(new Error('the server closed the connection')));
  }

  get(path: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.#socket.write(`GET ${path}${this.#head}`);
    });
  }

  close(): void {
    this.#settle = null;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#bodyStart < 0) this.#readHead();
    if (this.#size < this.#total) return;
    const body = Buffer.concat(this.#chunks).subarray(this.#bodyStart);
    this.#chunks = [];
    this.#size = 0;
    this.#bodyStart = -1;
    this.#total = Number.POSITIVE_INFINITY;
    this.#settle?.resolve(body);
  }

  #readHead(): void {
    const received =
      this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
    const end = received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = received.toString('latin1', 0, end);
    if (!head.startsWith(`HTTP/1.1 ${this.#status}`))
      throw new Error(`unexpected response: ${head.slice(0, 80)}`);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error('the response has no Content-Length');
    this.#bodyStart = end + HEAD_END.length;
    this.#total = this.#bodyStart + Number(length);
  }
}
