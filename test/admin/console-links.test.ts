/** Sealed links and sessions: how long they last, and which are refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINK_MS, makeLink, SESSION_MS, Sessions } from '../../src/admin/console/sessions.ts';

describe('links and sessions', () => {
  const secret = Buffer.alloc(32, 7);
  const person = { name: 'Ada', read_only: false };
  const startMs = Date.parse('2026-11-21T12:00:00Z');
  const open = (of = secret, epoch = () => 0) =>
    new Sessions(of, (ticket) => ticket.epoch === epoch(), startMs);

  test('a link lasts ten minutes, a session twelve hours', () => {
    const sessions = open();
    const link = () => makeLink(secret, person, 0, startMs);
    assert.equal(sessions.redeem(link(), startMs + LINK_MS), null);
    assert.equal(sessions.redeem(link(), startMs - 1), null, 'a link from the future is refused');
    const session = sessions.redeem(link(), startMs + LINK_MS - 1) ?? '';
    const begunMs = startMs + LINK_MS - 1;
    assert.equal(sessions.open(session, begunMs + SESSION_MS - 1)?.name, 'Ada');
    assert.equal(sessions.open(session, begunMs + SESSION_MS), null);
    assert.equal(sessions.open(session, begunMs - 1), null);
  });

  test('links and sessions of another secret or an earlier epoch are refused', () => {
    const session = open().redeem(makeLink(secret, person, 0, startMs), startMs) ?? '';
    assert.notEqual(open().open(session, startMs), null);
    assert.equal(open(Buffer.alloc(32, 8)).open(session, startMs), null);
    assert.equal(open(secret, () => 1).open(session, startMs), null);
    assert.equal(open(secret, () => 1).redeem(makeLink(secret, person, 0, startMs), startMs), null);
  });

  test('a link from before the start is refused: it may have been used', () => {
    assert.equal(open().redeem(makeLink(secret, person, 0, startMs - 1), startMs), null);
  });
});
