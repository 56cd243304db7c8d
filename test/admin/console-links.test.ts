/** Sealed links and sessions: how long they last, and which are refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINK_MS, makeLink, SESSION_MS, Sessions } from '../../src/auth/console-sessions.ts';
import { HOUR_MS } from '../../src/time.ts';

describe('links and sessions', () => {
  const secret = Buffer.alloc(32, 7);
  const person = { by: { actor: 'ada' }, read_only: false };
  const startMs = Date.parse('2026-11-21T12:00:00Z');
  const open = (of = secret, epoch = () => 0, run = 'one') =>
    new Sessions(of, (ticket) => ticket.epoch === epoch(), run);
  const linkAt = (nowMs: number) => makeLink(secret, person, { epoch: 0, run: 'one' }, nowMs);

  test('a link lasts ten minutes, a session twelve hours', () => {
    const sessions = open();
    const link = () => linkAt(startMs);
    assert.equal(sessions.redeem(link(), startMs + LINK_MS), null);
    assert.equal(sessions.redeem(link(), startMs - 1), null, 'a link from the future is refused');
    const session = sessions.redeem(link(), startMs + LINK_MS - 1) ?? '';
    const begunMs = startMs + LINK_MS - 1;
    assert.equal(sessions.open(session, begunMs + SESSION_MS - 1)?.by.actor, 'ada');
    assert.equal(sessions.open(session, begunMs + SESSION_MS), null);
    assert.equal(sessions.open(session, begunMs - 1), null);
  });

  test('links and sessions of another secret or an earlier epoch are refused', () => {
    const session = open().redeem(linkAt(startMs), startMs) ?? '';
    assert.notEqual(open().open(session, startMs), null);
    assert.equal(open(Buffer.alloc(32, 8)).open(session, startMs), null);
    assert.equal(open(secret, () => 1).open(session, startMs), null);
    assert.equal(open(secret, () => 1).redeem(linkAt(startMs), startMs), null);
  });

  test('a link works once, and only in the run that it was made for, which knows whether it was used', () => {
    const [sessions, link] = [open(), linkAt(startMs)];
    assert.notEqual(sessions.redeem(link, startMs), null);
    assert.equal(sessions.redeem(link, startMs), null);
    assert.equal(open(secret, () => 0, 'two').redeem(link, startMs), null);
  });

  test('links still work after the clock was set back', () => {
    const sessions = open();
    assert.notEqual(sessions.redeem(linkAt(startMs), startMs), null);
    const earlierMs = startMs - HOUR_MS;
    assert.notEqual(sessions.redeem(linkAt(earlierMs), earlierMs), null);
    assert.equal(sessions.redeem(linkAt(startMs), earlierMs), null, 'its age is unknown');
  });
});
