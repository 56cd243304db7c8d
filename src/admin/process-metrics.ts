/**
 * The process itself: processor time, memory, open files. Under the names that prom-client gives them; its own
 * collector also watches every collection of garbage, which cost a light request a twentieth.
 */
import { readdir } from 'node:fs/promises';
import { SECOND_MS } from '../time.ts';
import type { Fact, Value } from './gauges.ts';

const MICROSECONDS = 1e6;

export function processFacts(): Fact[] {
  const startedSeconds = Math.round((performance.timeOrigin / SECOND_MS) * 1000) / 1000;
  const fact = (name: string, help: string, read: () => number): Fact => ({
    name,
    help,
    labels: [],
    read: () => one(read()),
  });
  return [
    fact('process_cpu_seconds_total', 'Processor time of all threads.', () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / MICROSECONDS;
    }),
    fact('process_start_time_seconds', 'When the process began.', () => startedSeconds),
    fact('process_resident_memory_bytes', 'Memory of the process.', () => process.memoryUsage.rss()),
    { name: 'process_open_fds', help: 'Open files and sockets.', labels: [], read: openFiles },
    fact('nodejs_heap_size_used_bytes', 'Heap in use on the thread that answers requests.', () => {
      return process.memoryUsage().heapUsed;
    }),
  ];
}

function one(value: number): Value[] {
  return [{ labels: {}, value }];
}

/** Linux only; elsewhere it has no value. */
async function openFiles(): Promise<Value[]> {
  const files = await readdir('/proc/self/fd').catch(() => null);
  return files === null ? [] : one(files.length);
}
