import { connect } from 'node:net';
import { startTestServer, NOW_MS } from './support/server.ts';
const s = await startTestServer(); const { key } = s.makeKey();
s.store.deliver(Array.from({length:1000},(_, i)=>({content_type:'text' as const,version:1,row:{source_internal_id:i,article_headline:'x'.repeat(20000)}})), NOW_MS-1000);
const t0=Date.now();
function run(name: string, start: (k: ReturnType<typeof connect>)=>void, read: boolean){return new Promise<void>(res=>{const k=connect(s.port,'127.0.0.1',()=>start(k)); let got=''; if(read)k.on('data',d=>{got+=d.toString().slice(0,300)}); k.on('error',e=>console.log(name,'err',e.message)); k.on('close',()=>{console.log(name,'closed after',Date.now()-t0,got.slice(0,20), /x-request-id/i.test(got));res()});
 if(!read){k.pause(); const iv=setInterval(()=>{ if(k.destroyed) clearInterval(iv)},500); s.running; }
});}
const all=[
 run('silent',()=>{},true),
 run('slow head',k=>{k.write('GET /x HTTP/1.1\r\n'); const iv=setInterval(()=>{if(k.destroyed)clearInterval(iv);else k.write('a: b\r\n')},1000)},true),
 run('slow body',k=>{k.write('POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'); const iv=setInterval(()=>{if(k.destroyed)clearInterval(iv);else k.write('a')},1000)},true),
 run('idle after one',k=>{k.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n')},true),
];
const nr=connect(s.port,'127.0.0.1'); nr.on('error',()=>{}); nr.write(`GET /v1/detections/changes?since=2026-11-21T11:00:00Z&limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`.repeat(20)); nr.pause();
setTimeout(()=>console.log('rss', process.memoryUsage().rss/1e6, 'requests logged', s.lines.filter(l=>l.msg==='request').length),3000);
setTimeout(()=>{ console.log('rss', process.memoryUsage().rss/1e6,'never-read: server side connections', ); s.running; },70000);
// detect server-side close of the never-reader
const iv=setInterval(async()=>{ },1000);
await Promise.race([Promise.all(all),new Promise(r=>setTimeout(r,100000))]);
nr.resume(); let n=0; nr.on('data',d=>n+=d.length); await new Promise(r=>nr.on('close',r)); console.log('never-read got',n,'closed', Date.now()-t0);
clearInterval(iv); await s.close();
