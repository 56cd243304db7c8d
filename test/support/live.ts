/** What a running appliance without alerts says of itself. */
import type { Live } from '../../src/operations/operation.ts';

export const LIVE: Live = {
  url: 'http://127.0.0.1',
  console: null,
  alerts: [],
  health: {
    status: 'ok',
    exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
    alerts: { open: 0, page_worthy: 0, paused: 0 },
    role: 'writer',
  },
  role: 'writer',
  copy: null,
  reading: null,
};
