/* SPDX-License-Identifier: MIT */

/* Bars and plots. */

function stateBar(row) {
  const total = STATES.reduce((sum, state) => sum + (row[state] || 0), 0);
  const svg = s('svg', {class: 'statebar', 'aria-hidden': 'true'},
    s('rect', {width: '100%', height: 9, class: 'bar-none'}));
  /* what is there is seen, be it one of a million */
  const wide = STATES.map((state) => row[state] > 0
    ? Math.max(1.2, 100 * row[state] / total) : 0);
  const scale = 100 / Math.max(100, wide.reduce((sum, w) => sum + w, 0));
  let x = 0;
  STATES.forEach((state, i) => {
    if (!wide[i]) return;
    svg.append(s('rect', {x: x.toFixed(2) + '%', height: 9,
      width: (wide[i] * scale).toFixed(2) + '%',
      ...(state === 'ready' ? {class: 'bar-ready'}
        : {fill: `url(#p-${state})`})}));
    x += wide[i] * scale;
  });
  return svg;
}

/* Path of a line over `points`, with gaps where nothing is known; of the area
 * under it where `isArea`. */
function path(points, top, width, height, isArea) {
  const step = width / (points.length - 1);
  let text = '', began = null;
  const x = (i) => (i * step).toFixed(1);
  const close = (i) => {
    if (isArea && began !== null)
      text += `L${x(i - 1)} ${height}L${x(began)} ${height}Z`;
    began = null;
  };
  points.forEach((value, i) => {
    if (value == null) return close(i);
    text += (began === null ? 'M' : 'L') + x(i) + ' ' +
      (height - height * Math.min(1, value / top)).toFixed(1);
    if (began === null) {
      began = i;
      if (points[i + 1] == null) text += 'h' + step.toFixed(1);
    }
  });
  close(points.length);
  return text;
}

const most = (points) => points.reduce((m, v) => v > m ? v : m, 0);

function spark(points, label, format) {
  if (!points || points.every((value) => value == null))
    return s('svg', {class: 'spark none', viewBox: '0 0 110 26', role: 'img',
      'aria-label': label + ': nothing measured yet'},
    s('line', {x1: 0, y1: 25, x2: 110, y2: 25}));
  const top = most(points) || 1;
  return s('svg', {class: 'spark', viewBox: '0 0 110 26', role: 'img',
    'aria-label': `${label} of the last hour, at most ${format(top)}`},
  s('path', {class: 'area', d: path(points, top, 110, 25, true)}),
  s('path', {d: path(points, top, 110, 25, false)}));
}

function plot(title, points, format, now) {
  const known = (points || []).filter((value) => value != null);
  const top = most(known) || 1;
  const svg = s('svg', {viewBox: '0 0 600 120', preserveAspectRatio: 'none',
    role: 'img', 'aria-label': known.length === 0
      ? title + ': nothing measured yet'
      : `${title}, last hour: ${known.length} points, at most ${format(top)}`});
  for (const y of [1, 40, 80, 119])
    svg.append(s('line', {class: 'grid', x1: 0, x2: 600, y1: y, y2: y}));
  if (known.length > 0)
    svg.append(
      s('path', {class: 'area', d: path(points, top, 600, 118, true)}),
      s('path', {class: 'line', d: path(points, top, 600, 118, false)}));
  return h('figure', {class: 'plot'},
    h('figcaption', {}, h('b', {}, title),
      h('span', {}, 'now ', format(now), known.length > 0
        ? ` · most ${format(most(known))}` : ' · nothing measured yet')),
    svg,
    h('div', {class: 'axis', 'aria-hidden': 'true'},
      h('span', {}, '1 h ago'), h('span', {}, '30 min'), h('span', {}, 'now')));
}
