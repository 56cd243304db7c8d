/** Links into the console and sessions: how long they last, and which are refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINK_MS, makeTicket, SESSION_MS, Sessions } from '../../src/auth/console-sessions.ts';
import { HOUR_MS } from '../../src/time.ts';

describe('links and sessions', () => {
  const startMs = Date.parse('2026-11-21T12:00:00Z');
  const sessions = new Sessions();
  const linkAt = (nowMs: number) => {
    const link = makeTicket({ by: { actor: 'ada' }, read_only: false }, nowMs);
    sessions.addLink(link);
    return link.token;
  };

  test('a link is short enough to be typed', () => {
    assert.match(linkAt(startMs), /^[\w-]{32}$/);
  });

  test('a link lasts ten minutes, a session twelve hours', () => {
    assert.equal(sessions.redeem(linkAt(startMs), startMs + LINK_MS), null);
    assert.equal(sessions.redeem(linkAt(startMs), startMs - 1), null, 'a link from the future is refused');
    const begunMs = startMs + LINK_MS - 1;
    const { token } = sessions.redeem(linkAt(startMs), begunMs) ?? { token: '' };
    assert.equal(sessions.open(token, begunMs + SESSION_MS - 1)?.by.actor, 'ada');
    assert.equal(sessions.open(token, begunMs + SESSION_MS), null);
    assert.equal(sessions.open(token, begunMs - 1), null);
  });

  test('links still work after the clock was set back', () => {
    const earlierMs = startMs - HOUR_MS;
    assert.notEqual(sessions.redeem(linkAt(earlierMs), earlierMs), null);
    assert.equal(sessions.redeem(linkAt(startMs), earlierMs), null, 'its age is unknown');
  });
});
