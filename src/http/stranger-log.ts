/**
 * Log lines that anybody can cause: requests without a verified key, malformed ones, failed handshakes. The first ones of
 * each address in a minute are written, and the first ones of all; the others are counted, and their number is logged at
 * the end of the minute. Otherwise one client could fill the disk.
 */
import { addressNetwork } from '../addresses.ts';
import type { Logger } from '../logger.ts';
import { MINUTE_MS } from '../time.ts';

/** Written lines of one address in a minute. fail2ban counts them, so a ban must need no more (security.md). */
const ADDRESS_LINES_MAX = 10;
/** Written lines of all addresses in a minute; so many addresses are held in memory. */
const LINES_MAX = 500;

type Counts = Map<string, number>;

export type StrangerLog = ReturnType<typeof createStrangerLog>;

export function createStrangerLog(log: Logger) {
  const networks = new Map<string, { lines: number; readonly more: Counts }>();
  let lines = 0;
  /** Of addresses that had no ten lines when none were left. */
  let others: Counts = new Map();
  let timer: NodeJS.Timeout | undefined;

  function report(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const [address, { more }] of networks)
      if (more.size > 0) log.info({ address, counts: Object.fromEntries(more) }, 'further requests');
    if (others.size > 0)
      log.info({ counts: Object.fromEntries(others) }, 'further requests from other addresses');
    networks.clear();
    lines = 0;
    others = new Map();
  }

  return {
    /**
     * Calls `write`, or counts.
     * @param address that caused the line; an IPv6 network of 64 bits counts as one
     * @param kind one of a few: the error code, for example
     */
    note(address: string, kind: string, write: () => void): void {
      timer ??= setTimeout(report, MINUTE_MS).unref();
      const name = addressNetwork(address);
      const network = networks.get(name) ?? { lines: 0, more: new Map() };
      if (lines < LINES_MAX && network.lines < ADDRESS_LINES_MAX) {
        lines += 1;
        network.lines += 1;
        networks.set(name, network);
        write();
        return;
      }
      const counts = network.lines === ADDRESS_LINES_MAX ? network.more : others;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    },
    /** Logs what is only counted so far. */
    close: report,
  };
}
