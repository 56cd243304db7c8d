/**
 * The process itself: processor time, memory, open files, and how long the thread that answers requests was kept from
 * it. Under the names that prom-client gives them; its own collector also watches every collection of garbage, which
 * cost a light request a twentieth.
 */
import { readdir } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { SECOND_MS } from '../time.ts';
import type { Fact, Value } from './standing.ts';

const MICROSECONDS = 1e6;
const NANOSECONDS = 1e9;
/** A timer so often, and how late it was. */
const LAG_RESOLUTION_MS = 20;

export function processFacts(): Fact[] {
  const delay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delay.enable();
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
    {
      name: 'nodejs_eventloop_lag_p99_seconds',
      help: 'How late that thread got to what was due, at the 99th percentile since the last time this was asked for.',
      labels: [],
      read: () => {
        // Counted from the timer's start: what is beyond its period is delay.
        const lateMs = delay.percentile(99) / (NANOSECONDS / SECOND_MS) - LAG_RESOLUTION_MS;
        delay.reset();
        return one(Math.max(0, lateMs) / SECOND_MS);
      },
    },
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
