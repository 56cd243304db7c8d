/** The event streams of several consoles: all get a change, in turn. */
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { createEventStreams, SPREAD_MS } from '../../src/admin/console/event-streams.ts';

test('a change is sent to each open console in turn, and to none that was closed', ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const sent: number[] = [];
  const streams = createEventStreams(() => {});
  const consoles = [0, 1, 2].map((index) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    mock.method(response, 'write', () => sent.push(index) > 0);
    assert.ok(streams.add(response, () => true));
    return response;
  });
  streams.send(['overview']);
  assert.deepEqual(sent, [0], 'the first event is sent at once');
  mock.timers.tick(SPREAD_MS);
  assert.deepEqual(sent, [0, 1]);
  consoles[2]?.emit('close');
  mock.timers.tick(SPREAD_MS);
  assert.deepEqual(sent, [0, 1]);
  streams.close();
});
