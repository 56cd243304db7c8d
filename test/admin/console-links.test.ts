/** Links into the console and signed sessions: how long they last, and which are refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINK_MS, Links, makeLink, SESSION_MS, Sessions } from '../../src/auth/console-sessions.ts';
import { HOUR_MS } from '../../src/time.ts';

describe('links and sessions', () => {
  const secret = Buffer.alloc(32, 7);
  const person = { by: { actor: 'ada' }, read_only: false };
  const startMs = Date.parse('2026-11-21T12:00:00Z');
  const links = new Links();
  const open = (of = secret, epoch = () => 0, known = links) =>
    new Sessions(of, (ticket) => ticket.epoch === epoch(), known);
  const linkAt = (nowMs: number) => {
    const link = makeLink(person, 0, nowMs);
    links.set(link.id, link);
    return link.id;
  };

  test('a link is short enough to be typed', () => {
    assert.match(linkAt(startMs), /^[\w-]{32}$/);
  });

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

  test('sessions of another secret, and links and sessions of an earlier epoch, are refused', () => {
    const session = open().redeem(linkAt(startMs), startMs) ?? '';
    assert.notEqual(open().open(session, startMs), null);
    assert.equal(open(Buffer.alloc(32, 8)).open(session, startMs), null);
    assert.equal(open(secret, () => 1).open(session, startMs), null);
    assert.equal(open(secret, () => 1).redeem(linkAt(startMs), startMs), null);
  });

  test('a link works once, and only in the run that made it', () => {
    const [sessions, link] = [open(), linkAt(startMs)];
    assert.equal(open(secret, () => 0, new Links()).redeem(link, startMs), null);
    assert.notEqual(sessions.redeem(link, startMs), null);
    assert.equal(sessions.redeem(link, startMs), null);
  });

  test('a link is no session, and a session no link', () => {
    const link = linkAt(startMs);
    assert.equal(open().open(link, startMs), null);
    assert.equal(open().redeem(open().redeem(link, startMs) ?? '', startMs), null);
  });

  test('links still work after the clock was set back', () => {
    const sessions = open();
    assert.notEqual(sessions.redeem(linkAt(startMs), startMs), null);
    const earlierMs = startMs - HOUR_MS;
    assert.notEqual(sessions.redeem(linkAt(earlierMs), earlierMs), null);
    assert.equal(sessions.redeem(linkAt(startMs), earlierMs), null, 'its age is unknown');
  });
});
