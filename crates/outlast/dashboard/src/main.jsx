import { render } from 'preact';
import { App } from './app.jsx';

const place = document.getElementById('app');
place.textContent = '';
render(<App />, place);
