'use strict';
// Text of the model only ever becomes text nodes, so nothing it writes can run.
const $ = id => document.getElementById(id);
const store = { get: (k, d) => JSON.parse(localStorage.getItem(k) ?? JSON.stringify(d)), set: (k, v) => localStorage.setItem(k, JSON.stringify(v)) };
let chats = store.get('chats', []), current = 0, running = null, model = '';

function element(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}
// Code fences, inline code and bold; everything else is plain text.
function inline(parent, text) {
  for (const part of text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)) {
    if (part.length > 2 && part[0] === '`') parent.append(element('code', '', part.slice(1, -1)));
    else if (part.length > 4 && part.startsWith('**')) parent.append(element('b', '', part.slice(2, -2)));
    else parent.append(document.createTextNode(part));
  }
}
function render(parent, text) {
  parent.replaceChildren();
  text.split(/^```/m).forEach((part, i) => {
    if (i % 2 === 1) {
      const pre = element('pre');
      pre.append(element('code', '', part.replace(/^[^\n]*\n?/, '')));
      parent.append(pre);
    } else for (const paragraph of part.split(/\n{2,}/)) {
      if (!paragraph.trim()) continue;
      const p = element('p');
      inline(p, paragraph.trim());
      parent.append(p);
    }
  });
}
function show() {
  const list = $('conversations');
  list.replaceChildren(...chats.map((chat, i) => {
    const item = element('li', i === current ? 'current' : '');
    const open = element('button', '', chat.messages[0]?.content.slice(0, 40) || 'New chat');
    open.onclick = () => { current = i; show(); };
    const remove = element('button', '', '×');
    remove.title = 'Delete';
    remove.onclick = () => { chats.splice(i, 1); if (!chats.length) chats.push({ messages: [] }); current = Math.min(current, chats.length - 1); save(); show(); };
    item.append(open, remove);
    return item;
  }));
  const box = $('messages');
  box.replaceChildren(...chats[current].messages.map(m => {
    const e = element('div', 'message ' + m.role);
    render(e, m.content);
    if (m.note) e.append(element('div', 'note', m.note));
    return e;
  }));
  box.scrollTop = box.scrollHeight;
}
const save = () => store.set('chats', chats);

async function answer() {
  if (running) return;
  const chat = chats[current], box = $('messages');
  const body = { model, stream: true, stream_options: { include_usage: true }, messages: chat.messages.map(m => ({ role: m.role, content: m.content })) };
  if ($('system').value) body.messages.unshift({ role: 'system', content: $('system').value });
  for (const key of ['temperature', 'top_p', 'max_tokens', 'seed']) if ($(key).value !== '') body[key] = Number($(key).value);
  const view = element('div', 'message assistant', '…');
  box.append(view);
  running = new AbortController();
  $('stop').hidden = false; $('send').hidden = true;
  let text = '', note = '', first = 0, tokens = 0;
  const begin = performance.now();
  try {
    const headers = { 'Content-Type': 'application/json' };
    if ($('key').value) headers.Authorization = 'Bearer ' + $('key').value;
    const reply = await fetch('v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(body), signal: running.signal });
    if (!reply.ok) throw new Error((await reply.json()).error.message);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '';;) {
      const { value, done } = await reader.read();
      if (done) break;
      rest += value;
      const events = rest.split('\n\n');
      rest = events.pop();
      for (const event of events) {
        if (!event.startsWith('data: ') || event === 'data: [DONE]') continue;
        const data = JSON.parse(event.slice(6));
        if (data.error) throw new Error(data.error.message);
        if (data.usage) tokens = data.usage.completion_tokens;
        const piece = data.choices[0]?.delta?.content;
        if (!piece) continue;
        first ||= performance.now();
        text += piece;
        const follow = box.scrollTop + box.clientHeight > box.scrollHeight - 40;
        render(view, text);
        if (follow) box.scrollTop = box.scrollHeight;
      }
    }
    const seconds = (performance.now() - first) / 1000;
    note = `${tokens} tokens, ${(tokens / Math.max(seconds, 1e-3)).toFixed(0)} tokens/s, first after ${(first - begin).toFixed(0)} ms`;
  } catch (error) {
    if (error.name === 'AbortError') note = 'stopped';
    else { view.className = 'message error'; view.textContent = error.message; }
  }
  if (text) chat.messages.push({ role: 'assistant', content: text, note });
  running = null;
  $('stop').hidden = true; $('send').hidden = false;
  save();
  if (text) show();
}
$('form').onsubmit = event => {
  event.preventDefault();
  const text = $('input').value.trim();
  if (!text || running) return;
  $('input').value = '';
  chats[current].messages.push({ role: 'user', content: text });
  save(); show(); answer();
};
$('input').onkeydown = event => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); $('form').requestSubmit(); } };
$('stop').onclick = () => running?.abort();
$('again').onclick = () => {
  const messages = chats[current].messages;
  if (running || !messages.length) return;
  if (messages.at(-1).role === 'assistant') messages.pop();
  show(); answer();
};
$('new').onclick = () => { chats.unshift({ messages: [] }); current = 0; save(); show(); $('input').focus(); };
for (const tab of ['chat', 'dashboard']) $('tab-' + tab).onclick = () => {
  for (const other of ['chat', 'dashboard']) { $(other).hidden = other !== tab; $('tab-' + other).setAttribute('aria-selected', other === tab); }
};

const rates = [];
let before = null;
async function poll() {
  const values = {};
  try {
    for (const line of (await (await fetch('metrics')).text()).split('\n')) {
      const match = line.match(/^([\w:]+)(?:\{[^}]*\})? (\S+)$/);
      if (match) values[match[1]] = Number(match[2]);
    }
  } catch { return; }
  const now = performance.now(), made = values['vllm:generation_tokens_total'];
  const rate = before ? Math.max(0, (made - before.made) / (now - before.now) * 1000) : 0;
  before = { made, now };
  rates.push(rate);
  if (rates.length > 120) rates.shift();
  if ($('dashboard').hidden) return;
  const hits = values['vllm:prefix_cache_hits_total'] / Math.max(1, values['vllm:prefix_cache_queries_total']);
  const tiles = { Running: values['vllm:num_requests_running'], Waiting: values['vllm:num_requests_waiting'], 'Tokens/s': rate.toFixed(0),
    'KV in use': (100 * values['vllm:kv_cache_usage_perc']).toFixed(1) + ' %', 'Prefix hits': (100 * hits).toFixed(0) + ' %', 'Tokens made': made };
  $('tiles').replaceChildren(...Object.entries(tiles).map(([name, value]) => { const e = element('div', 'tile'); e.append(element('b', '', String(value)), name); return e; }));
  const canvas = $('plot'), c = canvas.getContext('2d'), top = Math.max(10, ...rates) * 1.1;
  c.clearRect(0, 0, canvas.width, canvas.height);
  c.strokeStyle = getComputedStyle(document.body).getPropertyValue('--accent');
  c.fillStyle = getComputedStyle(document.body).color;
  c.fillText(top.toFixed(0) + ' tokens/s', 6, 12);
  c.beginPath();
  rates.forEach((r, i) => c.lineTo(i * canvas.width / 119, canvas.height - r / top * canvas.height));
  c.stroke();
}
if (!chats.length) chats.push({ messages: [] });
show();
fetch('v1/models').then(r => r.json()).then(m => { model = m.data[0].id; $('model').textContent = model; }).catch(() => { $('model').textContent = 'needs an API key'; });
setInterval(poll, 1000);
